// A flag in the search, such as --resume, is a word to find. The search of the theme excludes pages with a word after -.
const post = Worker.prototype.postMessage
Worker.prototype.postMessage = function (message, ...others) {
  if (typeof message?.data === "string") message = { ...message, data: message.data.replace(/(^|\s)-+(?=\w)/g, "$1") }
  return post.call(this, message, ...others)
}
