import { Center, Loader } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, Suspense, useContext, useEffect, useState, type ReactNode } from 'react';
import { readSession, watchSession } from '../api/client.ts';
import { toFault } from '../api/fault.ts';
import type { AdminSession } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { LateOver } from '../feedback/late.tsx';
import { forgetDrafts } from '../forms/drafts.ts';
import { PresenceProvider } from './presence-provider.tsx';
import { later } from '../later.ts';

const ClosedPage = later(async () => (await import('./closed-page.tsx')).ClosedPage);
const ExpiredDialog = later(async () => (await import('./expired-dialog.tsx')).ExpiredDialog);
const LoginPage = later(async () => (await import('./login-page.tsx')).LoginPage);
const RefusedPage = later(async () => (await import('./refused-page.tsx')).RefusedPage);
const SetupPage = later(async () => (await import('./setup-page.tsx')).SetupPage);

export const SESSION = ['session'] as const;

const SessionContext = createContext<AdminSession | null>(null);

export function useSession(): AdminSession {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('There is no session here.');
  return session;
}

/** Nothing of the site is drawn before the server says who is there. A session that ends meanwhile is asked for on top of the page. */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const client = useQueryClient();
  const [expired, setExpired] = useState(false);
  const query = useQuery({
    queryKey: SESSION,
    queryFn: ({ signal }) => readSession(signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });

  useEffect(() => {
    watchSession({
      lost: () => setExpired(true),
      // One refused request need not mean that the whole site is closed: the session's own answer decides.
      refused: () => void client.invalidateQueries({ queryKey: SESSION }),
    });
  }, [client]);

  const userId = query.data?.user.id;
  useEffect(() => {
    if (userId !== undefined) forgetDrafts(userId);
  }, [userId]);

  const entered = (session: AdminSession): void => {
    const before = client.getQueryData<AdminSession>(SESSION);
    // Another person must not see what the one before had open.
    if (before !== undefined && before.user.id !== session.user.id) client.clear();
    client.setQueryData(SESSION, session);
    setExpired(false);
    void client.invalidateQueries({ predicate: (other) => other.queryKey[0] !== SESSION[0] });
  };

  const fault = query.error === null ? null : toFault(query.error);
  const readAgain = (): void => void client.invalidateQueries({ queryKey: SESSION });
  if (fault?.code === 'second_factor_required')
    return (
      <PresenceProvider login={null}>
        <Suspense fallback={<Waiting />}>
          <SetupPage onDone={readAgain} />
        </Suspense>
      </PresenceProvider>
    );
  if (fault?.status === 403)
    return (
      <Suspense fallback={<Waiting />}>
        {fault.code === 'staff_only' ? (
          <RefusedPage onEntered={entered} onSetup={readAgain} />
        ) : (
          <ClosedPage fault={fault} onRetry={readAgain} />
        )}
      </Suspense>
    );
  if (query.data === undefined) {
    if (fault === null) return <Waiting />;
    if (fault.status === 401)
      return (
        <Suspense fallback={<Waiting />}>
          <LoginPage onEntered={entered} onSetup={readAgain} />
        </Suspense>
      );
    return (
      <Center mih="100vh" p="md">
        <FaultNotice error={fault} onRetry={() => void query.refetch()} />
      </Center>
    );
  }
  return (
    <SessionContext value={query.data}>
      <PresenceProvider login={query.data.site.login}>{children}</PresenceProvider>
      {(expired || fault?.status === 401) && (
        <LateOver>
          <ExpiredDialog login={query.data.user.username} onEntered={entered} onSetup={readAgain} />
        </LateOver>
      )}
    </SessionContext>
  );
}

function Waiting() {
  return (
    <Center mih="100vh">
      <Loader aria-label="Loading" />
    </Center>
  );
}
