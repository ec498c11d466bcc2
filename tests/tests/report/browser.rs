//! Headless Chromium, driven by ChromeDriver's W3C WebDriver (w3.org/TR/webdriver2) over plain HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use spotsweep_needs::{find, met, programs};
use tempfile::TempDir;

/// The key that the protocol gives to a reference to an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// How long to wait for one answer.
const PATIENCE: Duration = Duration::from_secs(300);
/// CPU time of the sum in [`Browser::slowness`], with this engine on two cores of an Intel Xeon.
const SUM_MS: f64 = 60.0;
/// How often to start the driver.
const STARTS: u32 = 5;
/// Keys as the protocol writes them.
pub(crate) const ENTER: &str = "\u{E007}";
pub(crate) const ESCAPE: &str = "\u{E00C}";
pub(crate) const PAGE_DOWN: &str = "\u{E00F}";
pub(crate) const END: &str = "\u{E010}";
pub(crate) const ARROW_UP: &str = "\u{E013}";
pub(crate) const ARROW_DOWN: &str = "\u{E015}";

/// A browser with one window. Dropping it ends the browser and the driver.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

/// Starts a driver, and returns it with its port. `None` if it has ended before.
fn started(program: &Path) -> Option<(Child, u16)> {
    let mut driver =
        Command::new(program).arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines().map(Result::unwrap);
    let on_port = |line: String| {
        line.strip_prefix("ChromeDriver was started successfully on port ")
            .map(|rest| rest.trim_end_matches('.').parse().unwrap())
    };
    let port = lines.filter_map(on_port).next();
    if port.is_none() {
        driver.wait().unwrap();
    }
    Some((driver, port?))
}

impl Browser {
    /// Starts a browser. `None` if this machine has none.
    pub(crate) fn start() -> Option<Self> {
        let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(find);
        let missing =
            if chromium.is_some() { programs(&["chromedriver"]) } else { programs(&["chromium", "chromedriver"]) };
        if !met(missing) {
            return None;
        }
        // A driver ends at once if another program has just taken the port that it has chosen.
        let chromedriver = find("chromedriver")?;
        let (driver, port) = (0..STARTS).find_map(|_| started(&chromedriver)).expect("chromedriver says its port");
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Self { driver, port, session: String::new(), _profile: profile };
        let options = json!({ "binary": chromium, "args": [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1280,900",
            format!("--user-data-dir={}", browser._profile.path().display()),
        ] });
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" } });
        let session = browser.ask("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        Some(browser)
    }

    /// Opens a file, and waits until the page reports that it is drawn. Returns the milliseconds that this took.
    pub(crate) fn open(&self, page: &Path) -> f64 {
        self.tell("url", &json!({ "url": format!("file://{}", page.display()) }));
        for _ in 0..600 {
            let ready = self.run("return document.documentElement.dataset.ready ?? null");
            if let Some(ready) = ready.as_str() {
                return ready.parse().unwrap();
            }
            // The page waits, not the driver: the driver's answer comes after 50 ms of the page's time.
            self.tell("execute/async", &json!({ "script": "setTimeout(arguments[0], 50)", "args": [] }));
        }
        panic!("{} was not drawn: {}", page.display(), self.log("browser"));
    }

    /// How much slower than an idle machine this one is now, measured with a computation that takes [`SUM_MS`] on an
    /// idle one.
    pub(crate) fn slowness(&self) -> f64 {
        let sum = "const start = performance.now(); let sum = 0;
            for (let i = 0; i < 3e7; i += 1) sum += Math.sqrt(i); return [performance.now() - start, sum]";
        (self.run(sum)[0].as_f64().unwrap() / SUM_MS).max(1.0)
    }

    /// Runs a script in the page, and returns its value.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.tell("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until the page shows the result of the last action.
    pub(crate) fn settle(&self) {
        let frames = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0], 50)))";
        self.tell("execute/async", &json!({ "script": frames, "args": [] }));
    }

    /// Clicks on an element as a person would. It must be visible and not covered.
    pub(crate) fn click(&self, selector: &str) {
        self.run(&format!("document.querySelector({}).scrollIntoView({{ block: 'center' }})", json!(selector)));
        let element = self.element(selector);
        self.tell(&format!("element/{element}/click"), &json!({}));
        self.settle();
    }

    /// Types into an element.
    pub(crate) fn type_on(&self, selector: &str, keys: &str) {
        let element = self.element(selector);
        self.tell(&format!("element/{element}/value"), &json!({ "text": keys }));
    }

    /// Drags from one place of the window to another.
    pub(crate) fn drag(&self, from: (i64, i64), to: (i64, i64)) {
        self.mouse(&[moved(from), pressed(), moved(to), released()]);
    }

    /// Moves the pointer to a place of the window, and waits until the page shows the result.
    pub(crate) fn hover(&self, place: (i64, i64)) {
        self.mouse(&[moved(place)]);
        self.settle();
    }

    pub(crate) fn double_click(&self, place: (i64, i64)) {
        self.mouse(&[moved(place), pressed(), released(), pressed(), released()]);
        self.settle();
    }

    fn mouse(&self, actions: &[Value]) {
        self.tell("actions", &json!({ "actions": [{ "type": "pointer", "id": "mouse", "actions": actions }] }));
    }

    /// Errors in the browser's log: of scripts, refused requests and violated policies.
    pub(crate) fn complaints(&self) -> Vec<Value> {
        self.log("browser").as_array().unwrap().clone()
    }

    /// Addresses that were requested since the last call, except for those within the page or the browser.
    pub(crate) fn requests(&self) -> Vec<String> {
        let log = self.log("performance");
        let messages = log.as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap());
        let messages = messages.map(|message| serde_json::from_str::<Value>(message).unwrap()["message"].take());
        let asked = messages.filter(|message| message["method"] == "Network.requestWillBeSent");
        let urls = asked.map(|message| message["params"]["request"]["url"].as_str().unwrap().to_owned());
        urls.filter(|url| !["data:", "chrome:"].iter().any(|own| url.starts_with(own))).collect()
    }

    /// Sends a command of Chromium's own protocol (chromedevtools.github.io/devtools-protocol).
    pub(crate) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.tell("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    fn log(&self, kind: &str) -> Value {
        self.tell("se/log", &json!({ "type": kind }))
    }

    fn element(&self, selector: &str) -> String {
        let found = self.tell("element", &json!({ "using": "css selector", "value": selector }));
        found[ELEMENT].as_str().unwrap().to_owned()
    }

    fn tell(&self, command: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{command}", self.session), body)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.exchange(method, path, &body.to_string()).unwrap();
        assert!(answer["error"].is_null(), "{path}: {answer}");
        answer
    }

    /// Sends one request, and returns the value in its answer. ChromeDriver keeps the connection open, so the length is
    /// read from the header.
    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<Value> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all((head + body).as_bytes())?;
        let mut answer = BufReader::new(stream);
        let (mut length, mut line) = (0, String::new());
        while answer.read_line(&mut line)? > 2 {
            if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = bytes.trim().parse().map_err(std::io::Error::other)?;
            }
            line.clear();
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body)?;
        Ok(serde_json::from_slice::<Value>(&body)?["value"].take())
    }
}

fn moved((x, y): (i64, i64)) -> Value {
    json!({ "type": "pointerMove", "duration": 50, "x": x, "y": y })
}

fn pressed() -> Value {
    json!({ "type": "pointerDown", "button": 0 })
}

fn released() -> Value {
    json!({ "type": "pointerUp", "button": 0 })
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser, which would go on if only ChromeDriver were killed. Errors are ignored, so that a failed
        // test does not panic twice.
        let _ = self.exchange("DELETE", &format!("/session/{}", self.session), "{}");
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
