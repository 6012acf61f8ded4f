import { Button, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useState, type FormEvent } from 'react';
import { logIn } from '../api/client.ts';
import type { AdminSession } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';

interface LoginFormProps {
  readonly login?: string;
  readonly onEntered: (session: AdminSession) => void;
}

export function LoginForm({ login: known = '', onEntered }: LoginFormProps) {
  const [login, setLogin] = useState(known);
  const [password, setPassword] = useState('');
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFault(null);
    try {
      const session = await logIn(login, password);
      setPassword('');
      onEntered(session);
    } catch (error) {
      setFault(error);
    } finally {
      setBusy(false);
    }
  };

  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack gap="md">
        {fault !== null && <FaultNotice error={fault} />}
        <TextInput
          label="User name or e-mail address"
          name="username"
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          required
          withAsterisk={false}
          data-autofocus={known === '' ? true : undefined}
          value={login}
          onChange={(event) => setLogin(event.currentTarget.value)}
        />
        <PasswordInput
          label="Password"
          name="password"
          autoComplete="current-password"
          required
          withAsterisk={false}
          data-autofocus={known === '' ? undefined : true}
          visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        <Button type="submit" loading={busy} fullWidth>
          Log in
        </Button>
      </Stack>
    </form>
  );
}
