/* How the search of this site ranks its results. Sphinx scores a page by where it finds the words of a query: 15 for
   a heading, 5 for the text, whatever the page is. Here the words of the title count more, pages that answer a question
   come before those that describe a subject, and tables, lists and names of the library come last. */
const LAST_PAGES = new Set([
  "app-server",
  "architecture",
  "compatibility",
  "configuration-reference",
  "error-codes",
  "library-compared",
  "library-reference",
]);

/* The stems of the words that count, as Sphinx takes them from a query. */
const stemsOf = (text) =>
  splitQuery(text.toLowerCase())
    .filter((word) => !stopwords.has(word))
    .map((word) => new Stemmer().stemWord(word));

const stemsOfQuery = () =>
  stemsOf(new URLSearchParams(window.location.search).get("q") || "");

/* The share of these words that are among the others: from 0 to 1. */
const shareOf = (words, others) =>
  words.filter((word) => others.includes(word)).length / Math.max(words.length, 1);

var Scorer = {
  score: ([page, title, anchor, , score, , kind]) => {
    const query = stemsOfQuery();
    const words = stemsOf(title);
    const match = shareOf(query, words);
    if (kind === "object" || (LAST_PAGES.has(page) && match < 1)) return score - 100;
    const isAnswer = /^(how-to\/(?!index$)|updating$)/.test(page);
    const isWholeTitle = match === 1 && shareOf(words, query) === 1;
    return score + (anchor ? 45 : 60) * match + (isAnswer ? 20 : 0) + (isWholeTitle ? 30 : 0);
  },

  // The values of Sphinx.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
