// Browsers start no worker for a page that was opened from a disk (file://). There, a hidden frame runs the script of
// the worker instead: it has a global scope of its own, and messages pass in both directions as they do for a worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #started;

    constructor(url) {
      super();
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.#frame.hidden = true;
      document.documentElement.append(this.#frame);
      const scope = this.#frame.contentWindow;
      scope.postMessage = (data) => setTimeout(() => this.#send("message", { data }));
      this.#started = new Promise((resolve) => {
        const script = this.#frame.contentDocument.createElement("script");
        script.onload = resolve;
        script.onerror = () => this.#send("error", { message: `cannot load ${url}` });
        script.src = new URL(url, location.href).href;
        this.#frame.contentDocument.documentElement.append(script);
      });
    }

    #send(type, fields) {
      const event = type === "message" ? new MessageEvent(type, fields) : new ErrorEvent(type, fields);
      this[`on${type}`]?.(event);
      this.dispatchEvent(event);
    }

    postMessage(data) {
      this.#started.then(() => {
        const scope = this.#frame.contentWindow;
        scope?.dispatchEvent(new scope.MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
