// Browsers load no worker from file://. There the search runs in a hidden frame, which answers like a worker; Material's
// offline plugin takes a script of this name instead of the one that it would fetch.
class FrameWorker extends EventTarget {
  constructor(url) {
    super()
    this.frame = document.createElement("iframe")
    this.frame.hidden = true
    document.body.append(this.frame)
    const inside = this.frame.contentWindow
    inside.document.open()
    inside.document.write("<body></body>")
    inside.document.close()
    inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
    inside.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => load(inside, next)), Promise.resolve())
    this.ready = load(inside, url)
  }

  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
  }

  terminate() {
    this.frame.remove()
  }
}

const load = (inside, url) =>
  new Promise((resolve, reject) => {
    const script = inside.document.createElement("script")
    script.onload = resolve
    script.onerror = reject
    script.src = url
    inside.document.body.append(script)
  })

if (location.protocol === "file:") window.Worker = FrameWorker
