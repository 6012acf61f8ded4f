export interface AccountLink {
  readonly purpose: 'reset' | 'invitation';
  readonly token: string;
}

/** `#reset=<token>` and `#invitation=<token>`, as they are in the mails. */
export function takeLink(): AccountLink | null {
  const found = /^#(reset|invitation)=([A-Za-z0-9_-]+)$/.exec(window.location.hash);
  if (found === null) return null;
  window.history.replaceState(null, '', window.location.pathname);
  return { purpose: found[1] as AccountLink['purpose'], token: found[2] ?? '' };
}
