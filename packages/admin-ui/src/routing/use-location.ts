import { useMemo, useSyncExternalStore } from 'react';
import { askToLeave, guardedHash } from './leave-guard.ts';
import { hashOf, parseHash, type Location, type Params, type Place } from './location.ts';

const changed = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  changed.add(listener);
  window.addEventListener('hashchange', listener);
  window.addEventListener('popstate', listener);
  return () => {
    changed.delete(listener);
    window.removeEventListener('hashchange', listener);
    window.removeEventListener('popstate', listener);
  };
}

// Before the listeners above: the way back from unsaved changes returns to them, and asks.
window.addEventListener('popstate', () => {
  const guarded = guardedHash();
  const hash = window.location.hash;
  if (guarded === null || hash === guarded) return;
  window.history.pushState(null, '', guarded);
  askToLeave(hash);
});

export function useLocation(): Location {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash);
  return useMemo(() => parseHash(hash), [hash]);
}

/** `replace`: the way back does not pass here again, as for each letter of a search. */
export function navigate(place: Place, params: Params = {}, { replace = false } = {}): void {
  const hash = hashOf(place, params);
  if (hash === window.location.hash) return;
  if (guardedHash() !== null) return askToLeave(hash);
  if (replace) window.history.replaceState(null, '', hash);
  else window.history.pushState(null, '', hash);
  for (const listener of changed) listener();
}
