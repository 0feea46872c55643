/* The search of the site runs in a web worker, which browsers refuse to pages that are opened from files.
   For such pages this class takes the worker's place: it runs the worker's script in a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.receive(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = new URL(address, location).href;
      this.ready = new Promise((done, failed) => {
        script.onload = done;
        script.onerror = failed;
      });
      this.ready.catch(() => this.receive(new ErrorEvent("error")));
      inside.document.body.append(script);
    }

    /* To the page: listeners, and the handler that the page may have set as a property. */
    receive(event) {
      this.dispatchEvent(event);
      const handler = this[`on${event.type}`];
      if (handler) handler.call(this, event);
    }

    /* To the worker, once its script has run. */
    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
