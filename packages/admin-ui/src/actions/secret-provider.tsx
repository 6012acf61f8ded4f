import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from 'react';
import type { AdminSecret } from '../api/shapes.ts';
import { later } from '../later.ts';
import { LateOver } from '../feedback/late.tsx';

const SecretDialog = later(async () => (await import('./secret-dialog.tsx')).SecretDialog);

type ShowSecret = (secret: AdminSecret) => void;

const SecretContext = createContext<ShowSecret>(() => {});

/** Shows a secret once. It lives in this component's state alone, and is gone from there when the dialog closes. */
export function useShowSecret(): ShowSecret {
  return useContext(SecretContext);
}

export function SecretProvider({ children }: { readonly children: ReactNode }) {
  const [secret, setSecret] = useState<AdminSecret | null>(null);
  const close = (): void => {
    setSecret(null);
    // The button that made it is gone with its form.
    window.requestAnimationFrame(() => {
      if (document.activeElement === document.body) document.querySelector<HTMLElement>('main h1')?.focus();
    });
  };
  const show = useCallback<ShowSecret>((next) => setSecret(next), []);
  return (
    <SecretContext value={useMemo(() => show, [show])}>
      {children}
      {secret !== null && (
        <LateOver>
          <SecretDialog secret={secret} onClose={close} />
        </LateOver>
      )}
    </SecretContext>
  );
}
