package image

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
)

// Binary is a static ELF binary for one platform.
type Binary struct {
	// OS and Arch name the platform with Go's names. OS is linux, Arch is amd64 or arm64.
	OS, Arch string
	// Path is the path of the binary on this machine.
	Path string
}

var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64,
	"arm64": elf.EM_AARCH64,
}

func (b Binary) platform() string { return b.OS + "/" + b.Arch }

// read returns the content of the binary. It returns an error if the binary needs another file to run on its platform,
// or is for another platform.
func (b Binary) read() ([]byte, error) {
	machine, ok := machines[b.Arch]
	if b.OS != "linux" || !ok {
		return nil, fmt.Errorf("platform %q of binary %s is not supported: it must be linux/amd64 or linux/arm64", b.platform(), b.Path)
	}
	content, err := os.ReadFile(b.Path)
	if err != nil {
		return nil, fmt.Errorf("reading the binary for %s: %w", b.platform(), err)
	}
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("binary %s for %s is not an ELF file: %w", b.Path, b.platform(), err)
	}
	if file.Machine != machine || file.OSABI != elf.ELFOSABI_NONE && file.OSABI != elf.ELFOSABI_LINUX {
		return nil, fmt.Errorf("binary %s is not for %s, but for %s of %s", b.Path, b.platform(), file.Machine, file.OSABI)
	}
	if file.Type != elf.ET_EXEC && file.Type != elf.ET_DYN {
		return nil, fmt.Errorf("binary %s is not executable: its type is %s", b.Path, file.Type)
	}
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP {
			return nil, fmt.Errorf("binary %s is dynamically linked: build it with CGO_ENABLED=0", b.Path)
		}
	}
	return content, nil
}
