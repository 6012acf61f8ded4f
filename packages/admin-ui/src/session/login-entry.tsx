import { Button, Group, Loader, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { readLogin, readSession } from '../api/client.ts';
import { toFault } from '../api/fault.ts';
import type { AdminSession } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { FramedEntry } from '../frame/framed-entry.tsx';
import { isFramed } from '../frame/host.ts';
import { loginAddress } from './login-address.ts';
import { LoginForm, type LoginFormProps } from './login-form.tsx';

export const LOGIN = ['login'] as const;

/** The way in: the form, or a link to the page where the application's users log in. */
export function LoginEntry(props: LoginFormProps) {
  const query = useQuery({ queryKey: LOGIN, queryFn: ({ signal }) => readLogin(signal), staleTime: Number.POSITIVE_INFINITY });
  if (query.data === undefined)
    return query.error === null ? (
      <Loader aria-label="Loading" />
    ) : (
      <FaultNotice error={query.error} onRetry={() => void query.refetch()} />
    );
  if (isFramed) return <FramedEntry login={query.data} onEntered={props.onEntered} />;
  if (query.data.portal?.by_link === true) return <Text size="sm">Open a new link to go on.</Text>;
  return query.data.url === null ? <LoginForm {...props} /> : <LoginLink {...props} url={query.data.url} />;
}

function LoginLink({ login = '', url, onEntered, onSetup }: LoginFormProps & { readonly url: string }) {
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const isOver = login !== '';
  const readAgain = async (): Promise<void> => {
    setBusy(true);
    setFault(null);
    try {
      const session: AdminSession = await readSession();
      onEntered(session);
    } catch (error) {
      if (toFault(error).code === 'second_factor_required') onSetup();
      else setFault(error);
    } finally {
      setBusy(false);
    }
  };
  // On top of a page the login opens in another tab: what was typed here stays.
  const place = isOver ? { target: '_blank', rel: 'noopener' } : {};
  return (
    <Stack gap="md">
      {fault !== null && <FaultNotice error={fault} />}
      <Group grow>
        <Button component="a" href={loginAddress(url)} {...place}>
          Log in
        </Button>
        {isOver && (
          <Button variant="default" loading={busy} onClick={() => void readAgain()}>
            Continue
          </Button>
        )}
      </Group>
    </Stack>
  );
}
