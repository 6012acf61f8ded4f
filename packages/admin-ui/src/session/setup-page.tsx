import { Button, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { FactorSetup } from '../account/factor-setup.tsx';
import { logOut, readLogin } from '../api/client.ts';
import { leave } from './leave.ts';
import { loginAddress } from './login-address.ts';
import { LOGIN } from './login-entry.tsx';
import css from './session.module.css';
import { useTabTitle } from './tab-title.ts';

/** The first login of staff: nothing else is open until the second factor is set up. */
export function SetupPage({ onDone }: { readonly onDone: () => void }) {
  const { data: login } = useQuery({ queryKey: LOGIN, queryFn: ({ signal }) => readLogin(signal), staleTime: Number.POSITIVE_INFINITY });
  useTabTitle('Set up one-time codes');
  return (
    <main className={css['page']}>
      <div className={css['card']}>
        <Title order={1}>{login?.account === false ? 'Set up a second factor' : 'Set up one-time codes'}</Title>
        {login?.account === true && (
          <>
            <Text size="sm" mt="sm" mb="lg">
              Staff accounts need a second factor: an authenticator app on your phone or computer shows a code for each login.
            </Text>
            <FactorSetup onDone={onDone} />
          </>
        )}
        {login?.account === false && <SetupElsewhere url={login.account_url} onDone={onDone} />}
        <Button variant="subtle" mt="md" onClick={() => void leave(logOut)}>
          Log out
        </Button>
      </div>
    </main>
  );
}

function SetupElsewhere({ url, onDone }: { readonly url: string | null; readonly onDone: () => void }) {
  return (
    <Stack gap="sm" mt="sm">
      <Text size="sm">Staff accounts need a second factor. Set it up in your account, then log in with it.</Text>
      {url !== null && (
        <Button component="a" href={loginAddress(url)}>
          Open your account
        </Button>
      )}
      <Button variant="default" onClick={onDone}>
        Continue
      </Button>
    </Stack>
  );
}
