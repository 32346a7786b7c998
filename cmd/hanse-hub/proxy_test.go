package main

import (
	"net/http"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/hanse-dev/hanse/hub"
)

func TestAProxyOfTheEnvironmentIsUsedOnlyIfItIsAskedFor(t *testing.T) {
	request := &http.Request{URL: &url.URL{Scheme: "https", Host: "member.example.com"}}
	var config rest.Config
	var o hub.Options
	useProxy(&config, &o, false)
	if o.Proxy != nil || config.Proxy == nil {
		t.Fatal("the environment is asked for a proxy")
	}
	if proxy, err := config.Proxy(request); proxy != nil || err != nil {
		t.Errorf("the hub's API server is called through %v: %v", proxy, err)
	}
	named := &url.URL{Scheme: "http", Host: "proxy.example.com"}
	config.Proxy = http.ProxyURL(named)
	useProxy(&config, &o, false)
	if proxy, _ := config.Proxy(request); proxy != named {
		t.Errorf("the proxy of the kubeconfig became %v", proxy)
	}
	config.Proxy = nil
	useProxy(&config, &o, true)
	if o.Proxy == nil || config.Proxy != nil {
		t.Error("the environment is not asked")
	}
}
