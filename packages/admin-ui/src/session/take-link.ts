export interface AccountLink {
  readonly purpose: 'reset' | 'invitation' | 'email' | 'link';
  readonly token: string;
}

/** `#reset=<token>`, `#invitation=<token>` and `#email=<token>`, as they are in the mails; `#link=<token>` of a link to the portal. */
export function takeLink(): AccountLink | null {
  const found = /^#(reset|invitation|email|link)=([A-Za-z0-9_-]+)$/.exec(window.location.hash);
  if (found === null) return null;
  window.history.replaceState(null, '', window.location.pathname);
  return { purpose: found[1] as AccountLink['purpose'], token: found[2] ?? '' };
}
