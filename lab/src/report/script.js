"use strict";
// The page is whole without this: it sorts tables and turns the light on and off.
(() => {
  const root = document.documentElement;
  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("outlast-lab-theme");
      localStorage.setItem("outlast-lab-theme", value);
    } catch {
      return null;
    }
  };
  const theme = stored();
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  const button = document.getElementById("theme");
  if (button) {
    button.addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      stored(root.dataset.theme);
    });
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      const sort = document.createElement("button");
      sort.type = "button";
      sort.append(...head.childNodes);
      head.append(sort);
      sort.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => {
          const cell = row.cells[place];
          if (!cell) return [2, ""];
          const value = Number.parseFloat(cell.dataset.v);
          return Number.isNaN(value) ? [1, cell.textContent] : [0, value];
        };
        const order = (a, b) => {
          if (a[0] !== b[0]) return a[0] - b[0];
          const sign = down ? -1 : 1;
          return sign * (a[0] === 0 ? a[1] - b[1] : a[1].localeCompare(b[1], undefined, { numeric: true }));
        };
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => [key(row), row]);
        rows.sort((a, b) => order(a[0], b[0]));
        body.append(...rows.map((row) => row[1]));
      });
    });
  }

  // Marks where one is.
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        links.forEach((link) => link.removeAttribute("aria-current"));
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-15% 0px -80% 0px" },
  );
  links.forEach((_, id) => {
    const section = document.getElementById(id);
    if (section) seen.observe(section);
  });
})();
