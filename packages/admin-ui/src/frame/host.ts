// The page around the frame: what it is told, and what is heard of it. Only pages of declared origins count.

/** Shown in a frame of another page: the document's own address says so, which the page around it cannot change without loading another document. */
export const isFramed = window.location.pathname.endsWith('/embed');

function tell(origins: readonly string[], message: object): void {
  // To each of them by name: a page of another origin gets nothing, not even that there is a portal.
  for (const origin of origins) window.parent.postMessage(message, origin);
}

/** Asks for the token of a new link, until one comes. */
export function askForLink(origins: readonly string[], onLink: (token: string) => void): () => void {
  const hear = ({ source, origin, data }: MessageEvent<{ readonly type?: unknown; readonly token?: unknown } | null>): void => {
    if (source !== window.parent || window.parent === window || !origins.includes(origin)) return;
    if (data?.type === 'kit-portal:link' && typeof data.token === 'string') onLink(data.token);
  };
  window.addEventListener('message', hear);
  tell(origins, { type: 'kit-portal:ready' });
  return () => window.removeEventListener('message', hear);
}

/** The frame is as high as its content. */
export function tellHeight(origins: readonly string[]): () => void {
  let told = 0;
  const observer = new ResizeObserver(() => {
    const height = document.documentElement.getBoundingClientRect().height;
    if (height !== told) tell(origins, { type: 'kit-portal:height', height: (told = height) });
  });
  observer.observe(document.documentElement);
  return () => observer.disconnect();
}
