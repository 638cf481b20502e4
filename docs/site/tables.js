/* Gives the cells of wide tables the names of their columns, which site.css shows on a narrow screen. */
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    const columns = [...table.querySelectorAll("thead th")].map((each) => each.textContent);
    if (columns.length < 3) continue;
    table.classList.add("wide");
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, number) => {
        cell.dataset.column = columns[number];
        cell.classList.toggle("blank", !cell.textContent.trim());
      });
    }
  }
});
