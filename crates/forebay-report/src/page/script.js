
(() => {
  "use strict";
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);

  // A mark's words move from its <title>, which browsers show late, to where the tip finds them.
  for (const picture of document.querySelectorAll(".pictures svg")) {
    picture.querySelectorAll(".mark").forEach((mark, index) => {
      const title = mark.querySelector("title");
      mark.dataset.tip = title.textContent;
      mark.setAttribute("aria-label", title.textContent);
      mark.setAttribute("role", "img");
      mark.setAttribute("tabindex", index === 0 ? "0" : "-1");
      title.remove();
    });
  }

  // Paper cannot be opened: browsers that do not print what a <details> hides get it open.
  addEventListener("beforeprint", () => {
    document.querySelectorAll(".terms details").forEach((terms) => {
      terms.open = true;
    });
  });

  const markOf = (event) => (event.target instanceof Element ? event.target.closest(".pictures .mark") : null);
  const show = (mark, x, y) => {
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, x - box.width / 2), document.documentElement.clientWidth - box.width - 8);
    const above = y - box.height - 12;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above >= 8 ? above : y + 18}px`;
  };
  const hide = () => {
    tip.hidden = true;
  };
  const byPointer = (event) => {
    const mark = markOf(event);
    if (mark) {
      show(mark, event.clientX, event.clientY);
    } else {
      hide();
    }
  };
  document.addEventListener("pointermove", byPointer);
  document.addEventListener("pointerdown", byPointer);
  document.addEventListener("scroll", hide, { passive: true, capture: true });
  document.addEventListener("focusin", (event) => {
    const mark = markOf(event);
    if (!mark || !mark.matches(":focus-visible")) {
      return;
    }
    const box = mark.getBoundingClientRect();
    // A scroll that brings the mark into view must not take its tip away again.
    requestAnimationFrame(() => show(mark, box.left + box.width / 2, box.top));
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      hide();
      return;
    }
    const mark = markOf(event);
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (!mark || !(event.key in steps || event.key === "Home" || event.key === "End")) {
      return;
    }
    const marks = [...mark.ownerSVGElement.querySelectorAll(".mark")];
    const here = marks.indexOf(mark);
    const next = event.key === "Home" ? 0 : event.key === "End" ? marks.length - 1 : here + steps[event.key];
    if (marks[next]) {
      event.preventDefault();
      mark.setAttribute("tabindex", "-1");
      marks[next].setAttribute("tabindex", "0");
      marks[next].focus();
    }
  });
})();
