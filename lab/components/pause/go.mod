module github.com/hanse-dev/hanse/lab/components/pause

go 1.26.0
