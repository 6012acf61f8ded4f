import { useEffect, useState, type ReactNode } from 'react';
import { watchPresence } from '../api/client.ts';
import type { AdminLogin } from '../api/shapes.ts';
import { later } from '../later.ts';
import { LateOver } from '../feedback/late.tsx';

const PresenceDialog = later(async () => (await import('./presence-dialog.tsx')).PresenceDialog);

/** Asks in place when the server wants to know that the person is still there; the request that it refused then goes out again. */
export function PresenceProvider({ login, children }: { readonly login: AdminLogin | null; readonly children: ReactNode }) {
  const [answer, setAnswer] = useState<((isPresent: boolean) => void) | null>(null);
  const byLink = login?.portal?.by_link === true;
  useEffect(() => {
    // Nobody can prove anything here: the link is too old for this change, and the server's sentence says so.
    if (byLink) return undefined;
    watchPresence(() => new Promise((settle) => setAnswer(() => settle)));
    return () => watchPresence(() => Promise.resolve(false));
  }, [byLink]);
  const close = (isPresent: boolean): void => {
    answer?.(isPresent);
    setAnswer(null);
  };
  return (
    <>
      {children}
      {answer !== null && (
        <LateOver>
          <PresenceDialog url={login?.account === false ? login.url : null} onClose={close} />
        </LateOver>
      )}
    </>
  );
}
