const SCHEME = 'data-mantine-color-scheme';

/** Paper is white: a dark page is printed in the colours of the light one. */
export function printInLight(): void {
  const { documentElement: root } = document;
  let before: string | null = null;
  window.matchMedia('print').addEventListener('change', ({ matches }) => {
    if (matches) before = root.getAttribute(SCHEME);
    const next = matches ? 'light' : before;
    if (next !== null) root.setAttribute(SCHEME, next);
  });
}
