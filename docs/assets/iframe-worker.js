/* Search without a server. Browsers start no worker from a file, so the search of the theme, which
   is one, would wait for ever. Opened from a file, it runs in an invisible frame instead. */
if (location.protocol === "file:") {
  const load = (page, url) => new Promise((resolve, reject) => {
    const script = page.createElement("script");
    script.onload = resolve;
    script.onerror = () => reject(new Error(`cannot load ${url}`));
    script.src = url;
    page.head.append(script);
  });

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "Search";
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = async (...urls) => {
        for (const each of urls) await load(frame.contentDocument, each);
      };
      this.inside = inside;
      this.ready = load(frame.contentDocument, new URL(url, location));
      this.terminate = () => frame.remove();
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(
        new this.inside.MessageEvent("message", { data })));
    }
  };
}
