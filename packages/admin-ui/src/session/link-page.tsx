import { Button, Stack, Text, Title } from '@mantine/core';
import { useEffect, useState, type FormEvent } from 'react';
import { choosePassword, confirmEmail } from '../api/client.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import type { AccountLink } from './take-link.ts';
import { NewPassword } from './new-password.tsx';
import css from './session.module.css';

export function LinkPage({ purpose, token }: AccountLink) {
  return purpose === 'email' ? <EmailPage token={token} /> : <PasswordPage purpose={purpose} token={token} />;
}

/** The address that the link was sent to becomes that of the account. */
function EmailPage({ token }: { readonly token: string }) {
  const [state, setState] = useState<'asking' | 'busy' | 'done'>('asking');
  const [fault, setFault] = useState<unknown>(null);
  useEffect(() => {
    document.title = 'Confirm your e-mail address · Admin';
  }, []);
  const confirm = async (): Promise<void> => {
    setState('busy');
    setFault(null);
    try {
      await confirmEmail(token);
      setState('done');
    } catch (error) {
      setFault(error);
      setState('asking');
    }
  };
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
            <Button loading={state === 'busy'} onClick={() => void confirm()}>
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
  const [state, setState] = useState<'typing' | 'busy' | 'done'>('typing');
  const [fault, setFault] = useState<unknown>(null);
  const title = purpose === 'reset' ? 'Set a new password' : 'Choose a password';
  useEffect(() => {
    document.title = `${title} · Admin`;
  }, [title]);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setState('busy');
    setFault(null);
    try {
      await choosePassword(purpose, token, password);
      setPassword('');
      setState('done');
    } catch (error) {
      setFault(error);
      setState('typing');
    }
  };

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
          <form onSubmit={(event) => void submit(event)}>
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
