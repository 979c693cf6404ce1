/** Draws a copy of a feed as columns of cards. Only cards near the visible part exist, so a feed may have very many rows. */

const STEP = 72;
const HEAD = 52;
const MARGIN = 24;
const WIDTH = 330;
const GAP = 18;
/** Rows above and below the visible ones that have cards, too. */
const SPARE = 6;
const HUES = [12, 214, 152, 276, 42, 330, 188];
const TITLES = ["text", "title", "name", "subject", "summary"];

const still = matchMedia("(prefers-reduced-motion: reduce)");

function make(kind, ...children) {
  const node = document.createElement("div");
  node.className = kind;
  node.append(...children);
  return node;
}

/** What a card says of an element. It is shown as text, whatever is in it. */
function described({ text, value }) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return { title: typeof value === "string" ? value : text, badge: "", facts: "" };
  }
  const name = TITLES.find((name) => typeof value[name] === "string");
  const facts = Object.entries(value)
    .filter(([other, fact]) => other !== name && other !== "priority" && fact !== null && typeof fact !== "object")
    .map(([other, fact]) => `${other} ${fact}`);
  const badge = typeof value.priority === "number" ? String(value.priority) : "";
  return { title: name ? value[name] : text, badge, facts: facts.slice(0, 4).join(" · ") };
}

class Card {
  constructor(row) {
    this.title = make("title");
    this.badge = make("badge");
    this.facts = make("facts");
    this.node = make("card", this.title, this.badge, this.facts);
    this.node.dataset.key = row.key;
    this.node.style.width = `${WIDTH}px`;
    this.element = null;
    this.fill(row);
  }

  fill(row) {
    if (row.element === this.element) return;
    const isNew = this.element === null;
    this.element = row.element;
    const { title, badge, facts } = described(row);
    this.title.textContent = title;
    this.badge.textContent = badge;
    this.facts.textContent = facts;
    if (!isNew) this.animate([{ filter: "brightness(1.25)" }, { filter: "none" }], 500);
  }

  place(section, row) {
    this.node.style.transform = `translate(${MARGIN + section * (WIDTH + GAP)}px, ${HEAD + row * STEP}px)`;
    this.node.style.setProperty("--hue", HUES[section % HUES.length]);
  }

  animate(frames, duration) {
    return this.node.animate(frames, { duration: still.matches ? 0 : duration, easing: "ease-out" });
  }

  /** Removes the card when an animation has ended. */
  async leave(frames, duration) {
    this.node.style.zIndex = -1;
    await this.animate(frames, duration).finished.catch(() => {});
    this.node.remove();
  }
}

export class Cards {
  #board;
  #canvas;
  #heads;
  #mirror = null;
  #cards = new Map();
  #frame = null;
  // What changed since the last frame: rows that came, rows that left, and where rows moved to.
  #added = new Set();
  #removed = new Set();
  #moved = new Map();

  constructor(board) {
    this.#board = board;
    this.#canvas = board.querySelector("#canvas");
    this.#heads = board.querySelector("#heads");
    board.addEventListener("scroll", () => this.#draws(), { passive: true });
    addEventListener("resize", () => this.#draws());
  }

  /** Draws a change with the next frame. */
  show(change) {
    this.#mirror = change.mirror;
    if (change.kind === "delta") {
      change.added.forEach((_, index) => this.#added.add(change.rows[index]));
      for (const [, to] of change.moves) {
        this.#added.delete(change.rows[to]);
        this.#moved.set(change.rows[to], change.added[to]);
      }
      for (const row of change.removed) this.#removed.add(row);
    }
    this.#draws();
  }

  #draws() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      if (this.#mirror) this.#draw();
    });
  }

  #draw() {
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.#board;
    const { sections } = this.#mirror;
    const longest = sections.reduce((most, { rows }) => Math.max(most, rows.length), 0);
    this.#canvas.style.width = `${2 * MARGIN + sections.length * (WIDTH + GAP) - GAP}px`;
    this.#canvas.style.height = `${HEAD + longest * STEP + MARGIN}px`;
    const left = Math.max(0, Math.floor((scrollLeft - MARGIN) / (WIDTH + GAP)));
    const right = Math.ceil((scrollLeft + clientWidth) / (WIDTH + GAP)) + 1;
    const top = Math.max(0, Math.floor(scrollTop / STEP) - SPARE);
    const bottom = Math.ceil((scrollTop + clientHeight) / STEP) + SPARE;
    this.#drawHeads(sections, left, right);
    const shown = new Map();
    for (let section = left; section < Math.min(right, sections.length); section += 1) {
      sections[section].rows.slice(top, bottom).forEach((row, index) => {
        const card = this.#cards.get(row) ?? this.#appear(row);
        card.fill(row);
        card.place(section, top + index);
        shown.set(row, card);
      });
    }
    for (const [row, card] of this.#cards) if (!shown.has(row)) this.#vanish(row, card);
    this.#cards = shown;
    this.#added.clear();
    this.#removed.clear();
    this.#moved.clear();
  }

  #appear(row) {
    const card = new Card(row);
    this.#canvas.append(card.node);
    if (this.#added.has(row)) card.animate([{ opacity: 0, scale: 0.94 }, { opacity: 1, scale: 1 }], 260);
    return card;
  }

  #vanish(row, card) {
    const target = this.#moved.get(row);
    if (this.#removed.has(row)) {
      card.leave([{ opacity: 1 }, { opacity: 0, scale: 0.94 }], 220);
    } else if (target) {
      card.place(...target);
      card.leave([{ opacity: 1 }, { opacity: 0 }], 280);
    } else {
      card.node.remove();
    }
  }

  #drawHeads(sections, left, right) {
    const heads = sections.slice(left, right).map(({ name, rows }, index) => {
      const title = make("name", name.slice(name.indexOf("/") + 1) || name);
      title.title = name;
      const head = make("head", title, make("number", rows.length.toLocaleString("en")));
      head.style.left = `${MARGIN + (left + index) * (WIDTH + GAP)}px`;
      head.style.width = `${WIDTH}px`;
      head.style.setProperty("--hue", HUES[(left + index) % HUES.length]);
      return head;
    });
    this.#heads.replaceChildren(...heads);
  }
}
