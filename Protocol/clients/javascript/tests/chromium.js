/** A headless Chromium that the tests drive by the DevTools protocol over a pipe. */

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const program = NAMES.find((name) => spawnSync(name, ["--version"], { stdio: "ignore" }).status === 0);

/** Why tests in a browser are skipped, or false. */
export const noChromium = program ? false : "chromium is not installed";

export class Browser {
  #process;
  #folder = mkdtempSync(join(tmpdir(), "feedd-chromium-"));
  #next = 0;
  #waiting = new Map();
  #listeners = new Map();
  #session;

  /** Starts a browser with one empty page. */
  static async start(width = 1280, height = 800) {
    const browser = new Browser();
    const options = [
      "--headless=new",
      "--remote-debugging-pipe",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-extensions",
      "--disable-background-networking",
      "--disable-component-update",
      "--no-first-run",
      "--mute-audio",
      "--hide-scrollbars",
      `--window-size=${width},${height}`,
      `--user-data-dir=${browser.#folder}`,
    ];
    browser.#process = spawn(program, [...options, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    browser.#process.stdio[3].on("error", () => {});
    browser.#read(browser.#process.stdio[4]);
    const { targetInfos } = await browser.send("Target.getTargets");
    const { targetId } = targetInfos.find(({ type }) => type === "page") ??
      (await browser.send("Target.createTarget", { url: "about:blank" }));
    const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
    browser.#session = sessionId;
    await browser.send("Page.enable");
    await browser.send("Runtime.enable");
    await browser.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    return browser;
  }

  async #read(stream) {
    let text = "";
    stream.setEncoding("utf8");
    for await (const piece of stream) {
      const messages = (text + piece).split("\0");
      text = messages.pop();
      messages.forEach((message) => this.#take(JSON.parse(message)));
    }
    for (const { reject } of this.#waiting.values()) reject(new Error("the browser ended"));
  }

  #take({ id, result, error, method, params }) {
    if (id === undefined) {
      for (const listener of this.#listeners.get(method) ?? []) listener(params);
      return;
    }
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) reject(new Error(error.message));
    else resolve(result);
  }

  send(method, params = {}) {
    const id = (this.#next += 1);
    this.#process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId: this.#session })}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  on(method, listener) {
    this.#listeners.set(method, [...(this.#listeners.get(method) ?? []), listener]);
  }

  async open(url) {
    const loaded = new Promise((resolve) => this.on("Page.loadEventFired", resolve));
    await this.send("Page.navigate", { url });
    await loaded;
  }

  /** The value of an expression in the page, which may be a promise. */
  async evaluate(expression) {
    const given = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", given);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Resolves when an expression is true in the page; it is tried with each frame. */
  until(expression) {
    return this.evaluate(`new Promise((resolve) => {
      const look = () => ((${expression}) ? resolve() : requestAnimationFrame(look));
      look();
    })`);
  }

  async picture(options = { format: "png" }) {
    return Buffer.from((await this.send("Page.captureScreenshot", options)).data, "base64");
  }

  async stop() {
    await this.send("Browser.close").catch(() => {});
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const end = setTimeout(() => this.#process.kill("SIGKILL"), 5000);
      await once(this.#process, "exit");
      clearTimeout(end);
    }
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
