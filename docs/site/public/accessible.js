// A table that scrolls must be reachable by keyboard; one that does not would only be one more stop.
const reach = () => {
  for (const table of document.querySelectorAll('.sl-markdown-content table')) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
    else table.removeAttribute('tabindex');
  }
};
// The keys beside "Search" are shown and are not part of its name: aria-keyshortcuts says them.
const keys = document.querySelector('button[data-open-modal] > kbd');
if (keys !== null) {
  keys.dataset.keys = [...keys.children].map((key) => key.textContent).join(' ');
  keys.replaceChildren();
}
reach();
addEventListener('resize', reach);
void document.fonts.ready.then(reach);
