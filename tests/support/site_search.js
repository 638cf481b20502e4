// Prints the pages that the search of a built site finds, best first: `node site_search.js SITE QUERIES.json`.
// The code that searches is Sphinx's own, as a browser would load it; here are only the parts of a page that it needs.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site, queries] = process.argv.slice(2);
const read = (name) => fs.readFileSync(path.join(site, name), "utf8");

const page = vm.createContext({
  URLSearchParams,
  console,
  document: {
    readyState: "complete",
    getElementById: () => null,
    querySelectorAll: () => [],
  },
  localStorage: { setItem: () => {} },
  SPHINX_HIGHLIGHT_ENABLED: false,
  _: (text) => text,
  _ready: (callback) => callback(),
});
page.window = page;
page.location = { search: "" };
// In the order of search.html.
for (const name of ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"]) {
  vm.runInContext(read(name), page, { filename: name });
}

// `results.pop()` is what the page shows first.
const search = `Search._performSearch(...Search._parseQuery(query)).reverse().map(([page]) => page)`;
const found = JSON.parse(fs.readFileSync(queries, "utf8")).map((query) => {
  page.query = query;
  page.location.search = "?" + new URLSearchParams({ q: query });
  return vm.runInContext(search, page);
});
console.log(JSON.stringify(found));
