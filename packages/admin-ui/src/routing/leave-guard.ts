import { useEffect, useSyncExternalStore } from 'react';

// A page with unsaved changes is not left without a question, however it is left.
let guarded: string | null = null;
let discard: () => void = () => {};
let asked: string | null = null;
const listeners = new Set<() => void>();

function tell(): void {
  for (const listener of listeners) listener();
}

/** The address of the page with unsaved changes; null when there is none. */
export function guardedHash(): string | null {
  return guarded;
}

/** Asks whether to go there. */
export function askToLeave(hash: string): void {
  asked = hash;
  tell();
}

interface LeaveGuard {
  /** What was typed is stored and comes back with the page: only leaving it for another asks. */
  readonly isKept: boolean;
  readonly onDiscard: () => void;
}

/** While `dirty`, leaving this page asks first. */
export function useLeaveGuard(dirty: boolean, { isKept, onDiscard }: LeaveGuard): void {
  useEffect(() => {
    discard = onDiscard;
  });
  useEffect(() => {
    if (!dirty) return undefined;
    guarded = window.location.hash;
    const onClick = (event: MouseEvent): void => {
      const link = event.target instanceof Element ? event.target.closest('a[href^="#"]') : null;
      const hash = link?.getAttribute('href') ?? null;
      if (hash === null || hash === guarded || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      event.stopPropagation();
      askToLeave(hash);
    };
    const onUnload = (event: BeforeUnloadEvent): void => event.preventDefault();
    document.addEventListener('click', onClick, true);
    if (!isKept) window.addEventListener('beforeunload', onUnload);
    return () => {
      guarded = null;
      document.removeEventListener('click', onClick, true);
      window.removeEventListener('beforeunload', onUnload);
    };
  }, [dirty, isKept]);
}

/** Lets the page go; call it before leaving with what was saved. */
export function releaseGuard(): void {
  guarded = null;
}

/** Where the user wants to go, and the two answers. Null: no navigation is pending. */
export function useLeaveQuestion(): { readonly stay: () => void; readonly leave: () => void } | null {
  const hash = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => asked,
  );
  if (hash === null) return null;
  const end = (): void => {
    asked = null;
    tell();
  };
  return {
    stay: end,
    leave: () => {
      guarded = null;
      discard();
      end();
      window.location.hash = hash;
    },
  };
}
