import { Button, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { choosePassword, confirmEmail } from '../api/client.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { useSending } from '../forms/use-sending.ts';
import type { AccountLink } from './take-link.ts';
import { NewPassword } from './new-password.tsx';
import { OpeningPage } from './opening-page.tsx';
import css from './session.module.css';
import { useTabTitle } from './tab-title.ts';

export function LinkPage({ purpose, token }: AccountLink) {
  if (purpose === 'link') return <OpeningPage token={token} />;
  return purpose === 'email' ? <EmailPage token={token} /> : <PasswordPage purpose={purpose} token={token} />;
}

/** The address that the link was sent to becomes that of the account. */
function EmailPage({ token }: { readonly token: string }) {
  const { state, fault, send } = useSending(() => confirmEmail(token));
  useTabTitle('Confirm your e-mail address');
  return (
    <main className={css['page']}>
      <div className={css['card']}>
        <Title order={1} mb="lg">
          Confirm your e-mail address
        </Title>
        <Stack gap="md">
          {fault !== null && <FaultNotice error={fault} />}
          {state === 'done' ? (
            <>
              <Notice tone="good">The address is changed.</Notice>
              <Button onClick={() => window.location.reload()}>Continue</Button>
            </>
          ) : (
            <Button loading={state === 'busy'} onClick={send}>
              Use this address
            </Button>
          )}
        </Stack>
      </div>
    </main>
  );
}

/** Takes a password for the account that the link was sent to. */
function PasswordPage({ purpose, token }: { readonly purpose: 'reset' | 'invitation'; readonly token: string }) {
  const [password, setPassword] = useState('');
  const { state, fault, onSubmit } = useSending(async () => {
    await choosePassword(purpose, token, password);
    setPassword('');
  });
  const title = purpose === 'reset' ? 'Set a new password' : 'Choose a password';
  useTabTitle(title);

  return (
    <main className={css['page']}>
      <div className={css['card']}>
        <Title order={1}>{title}</Title>
        <Text size="sm" c="dimmed" mt={4} mb="lg">
          The link works once. Other sessions of the account end.
        </Text>
        {state === 'done' ? (
          <Stack gap="md">
            <Notice tone="good">The password is set.</Notice>
            <Button onClick={() => window.location.reload()}>Go to the login</Button>
          </Stack>
        ) : (
          <form onSubmit={onSubmit}>
            <Stack gap="md">
              {fault !== null && <FaultNotice error={fault} />}
              <NewPassword value={password} onChange={setPassword} />
              <Button type="submit" loading={state === 'busy'} fullWidth>
                Save the password
              </Button>
            </Stack>
          </form>
        )}
      </div>
    </main>
  );
}
