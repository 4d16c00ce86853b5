package page_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// browserLimit is when a browser that does not do as it is told has failed its
// test.
const browserLimit = time.Minute

// browser is a headless Chromium, driven by its DevTools protocol
// (https://chromedevtools.github.io/devtools-protocol/).
type browser struct {
	t      *testing.T
	socket *websocket.Conn
	id     int
	// requests are the addresses that the page has asked for.
	requests []string
}

// startBrowser starts the browser, or skips the test where there is none.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium: install it (make browser, or apt-get install --no-install-recommends chromium) to open the page for real")
	}
	dir := t.TempDir()
	command := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--remote-debugging-port=0", "--user-data-dir="+dir, "about:blank")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
	})
	late := time.AfterFunc(browserLimit, func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() { late.Stop() })

	// It says where it listens, or ends.
	var text strings.Builder
	piece := make([]byte, 4096)
	address := ""
	for address == "" {
		n, err := said.Read(piece)
		text.Write(piece[:n])
		if _, after, found := strings.Cut(text.String(), "DevTools listening on "); found && strings.Contains(after, "\n") {
			address = strings.Fields(after)[0]
		} else if err != nil {
			t.Fatalf("the browser ended: %s", text.String())
		}
	}
	go func() { // or it would wait for its reader
		for {
			if _, err := said.Read(piece); err != nil {
				return
			}
		}
	}()
	b := &browser{t: t}
	b.socket, _, err = websocket.DefaultDialer.Dial(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.socket.Close() })
	return b
}

// tab opens a tab and gives its session.
func (b *browser) tab() string {
	b.t.Helper()
	var target struct{ TargetID string }
	b.do("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.do("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.do(session.SessionID, "Network.enable", nil, nil)
	b.do(session.SessionID, "Page.enable", nil, nil)
	return session.SessionID
}

// message is one of the protocol.
type message struct {
	ID        int
	SessionID string
	Method    string
	Params    json.RawMessage
	Result    json.RawMessage
	Error     *struct{ Message string }
}

// next reads a message, and notes what the page asks for.
func (b *browser) next() message {
	b.t.Helper()
	var m message
	if err := b.socket.ReadJSON(&m); err != nil {
		b.t.Fatalf("the browser does not answer any more: %v", err)
	}
	if m.Method == "Network.requestWillBeSent" {
		var p struct{ Request struct{ URL string } }
		_ = json.Unmarshal(m.Params, &p)
		b.requests = append(b.requests, p.Request.URL)
	}
	return m
}

// do has the browser do something, and reads its answer.
func (b *browser) do(session, method string, params map[string]any, answer any) {
	b.t.Helper()
	b.id++
	call := map[string]any{"id": b.id, "method": method, "params": params}
	if params == nil {
		call["params"] = map[string]any{}
	}
	if session != "" {
		call["sessionId"] = session
	}
	if err := b.socket.WriteJSON(call); err != nil {
		b.t.Fatal(err)
	}
	for {
		m := b.next()
		if m.ID != b.id {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if answer != nil {
			if err := json.Unmarshal(m.Result, answer); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

// open opens a page and waits until it is loaded.
func (b *browser) open(session, url string) {
	b.t.Helper()
	b.do(session, "Page.navigate", map[string]any{"url": url}, nil)
	for b.next().Method != "Page.loadEventFired" {
	}
}

// ask evaluates an expression in the page.
func (b *browser) ask(session, expression string, into any) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails any
	}
	b.do(session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %v", expression, answer.ExceptionDetails)
	}
	if err := json.Unmarshal(answer.Result.Value, into); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// faint lists texts that do not stand out from what is behind them as WCAG asks
// of normal text, 4.5 to 1.
const faint = `(() => {
  const channels = c => c.match(/[\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = channels(c).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (channels(c)[3] !== 0) return c; } return "rgb(255,255,255)"; };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(e.tagName + " " + e.textContent.trim().slice(0, 40) + " " + ratio.toFixed(1));
  }
  return found;
})()`

// The page in a real browser: at a phone's width and a desk's, in light and
// dark, it fits, can be read, asks nobody for anything, and every job can be
// reached by keyboard.
func TestPageInABrowser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.html")
	if err := os.WriteFile(path, made(t, courses(), 5*time.Minute), 0o600); err != nil {
		t.Fatal(err)
	}
	url := "file://" + path
	b := startBrowser(t)
	backgrounds := map[string]bool{}
	for _, width := range []int{360, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			session := b.tab()
			name := fmt.Sprintf("%d %s", width, scheme)
			b.do(session, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
			b.do(session, "Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
			b.open(session, url)
			var wide int
			b.ask(session, "document.documentElement.scrollWidth", &wide)
			if wide > width {
				t.Errorf("%s: the page is %d wide, so it scrolls sideways", name, wide)
			}
			var background string
			b.ask(session, "getComputedStyle(document.body).backgroundColor", &background)
			backgrounds[scheme+background] = true
			var unread []string
			b.ask(session, faint, &unread)
			if len(unread) > 0 {
				t.Errorf("%s: hard to read: %q", name, unread)
			}
			b.keyboard(session, name)
			b.keep(session, strings.ReplaceAll(name, " ", "-"))
		}
	}
	if len(backgrounds) != 2 {
		t.Errorf("light and dark have the backgrounds %v", backgrounds)
	}
	for _, asked := range b.requests {
		if asked != url && !strings.HasPrefix(asked, "data:") {
			t.Errorf("the page has asked for %s", asked)
		}
	}
	if len(b.requests) < 4 {
		t.Errorf("the requests %q are not all that there were", b.requests)
	}
}

// keyboard goes through the page by Tab. Each bar with a job must get the focus
// and show it; Enter on one leads to the job's row.
func (b *browser) keyboard(session, name string) {
	b.t.Helper()
	var bars int
	b.ask(session, `document.querySelectorAll("a.bar").length`, &bars)
	reached, regions := 0, 0
	for range bars + 30 {
		b.press(session, "Tab", 9, "")
		var at struct{ Tag, Class, Outline string }
		b.ask(session, `(e => ({tag: e.tagName, class: e.className, outline: getComputedStyle(e).outlineStyle}))(document.activeElement)`, &at)
		if at.Tag == "BODY" {
			break // once around
		}
		if at.Outline == "none" {
			b.t.Errorf("%s: the focus on %s %s does not show", name, at.Tag, at.Class)
		}
		switch {
		case strings.HasPrefix(at.Class, "bar"):
			reached++
		case at.Class == "scroll":
			regions++
		}
		if reached == 1 && strings.HasPrefix(at.Class, "bar") {
			b.press(session, "Enter", 13, "\r")
			var led bool
			b.ask(session, `document.querySelector("tr:target") !== null`, &led)
			if !led {
				b.t.Errorf("%s: Enter on a bar leads nowhere", name)
			}
			// Back to where the focus was.
			b.ask(session, `(document.querySelector("a.bar").focus({focusVisible: true}), true)`, &led)
		}
	}
	if reached < bars || regions < 4 {
		b.t.Errorf("%s: %d of %d bars and %d regions were reached by keyboard", name, reached, bars, regions)
	}
}

func (b *browser) press(session, key string, code int, text string) {
	b.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
	if text != "" {
		down["text"] = text
	}
	b.do(session, "Input.dispatchKeyEvent", down, nil)
	b.do(session, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
}

// shots is the environment variable with a folder for pictures, for people who
// want to look.
const shots = "PAGE_SCREENSHOTS"

func (b *browser) keep(session, name string) {
	b.t.Helper()
	dir := os.Getenv(shots)
	if dir == "" {
		return
	}
	var answer struct{ Data string }
	b.do(session, "Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &answer)
	picture, err := base64.StdEncoding.DecodeString(answer.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}
