import { Center, Loader, Modal, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, lazy, Suspense, useContext, useEffect, useState, type ReactNode } from 'react';
import { readSession, watchSession } from '../api/client.ts';
import { toFault } from '../api/fault.ts';
import type { AdminSession } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { forgetDrafts } from '../forms/drafts.ts';
import { LoginEntry } from './login-entry.tsx';
import { LoginPage } from './login-page.tsx';
import { PresenceProvider } from './presence-provider.tsx';
import { RefusedPage } from './refused-page.tsx';

const SetupPage = lazy(async () => ({ default: (await import('./setup-page.tsx')).SetupPage }));

const SESSION = ['session'] as const;

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
        <Suspense>
          <SetupPage onDone={readAgain} />
        </Suspense>
      </PresenceProvider>
    );
  if (fault?.status === 403) return <RefusedPage onEntered={entered} onSetup={readAgain} />;
  if (query.data === undefined) {
    if (fault === null) {
      return (
        <Center mih="100vh">
          <Loader aria-label="Loading" />
        </Center>
      );
    }
    if (fault.status === 401) return <LoginPage onEntered={entered} onSetup={readAgain} />;
    return (
      <Center mih="100vh" p="md">
        <FaultNotice error={fault} onRetry={() => void query.refetch()} />
      </Center>
    );
  }
  return (
    <SessionContext value={query.data}>
      <PresenceProvider login={query.data.site.login}>{children}</PresenceProvider>
      <Modal
        opened={expired || fault?.status === 401}
        onClose={() => {}}
        withCloseButton={false}
        closeOnEscape={false}
        closeOnClickOutside={false}
        title="Your session has ended"
        centered
        zIndex={500}
      >
        <Text size="sm" mb="md">
          Log in again to continue.
        </Text>
        <LoginEntry login={query.data.user.username} onEntered={entered} onSetup={readAgain} />
      </Modal>
    </SessionContext>
  );
}
