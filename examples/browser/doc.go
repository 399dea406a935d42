// Package browser is a static page that predicts a bag with onnxruntime-web. Its test opens
// the page in headless Chromium.
package browser
