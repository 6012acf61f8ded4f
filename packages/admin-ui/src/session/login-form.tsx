import { Button, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useState, type FormEvent } from 'react';
import { logIn } from '../api/client.ts';
import type { AdminSession } from '../api/shapes.ts';
import { toFault } from '../api/fault.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { CodeInput } from './code-input.tsx';

export interface LoginFormProps {
  readonly login?: string;
  readonly onEntered: (session: AdminSession) => void;
  /** Logged in, and one-time codes have to be set up before anything else. */
  readonly onSetup: () => void;
}

export function LoginForm({ login: known = '', onEntered, onSetup }: LoginFormProps) {
  const [login, setLogin] = useState(known);
  const [password, setPassword] = useState('');
  /** Null until the server has asked for one. */
  const [code, setCode] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFault(null);
    try {
      const session = await logIn(login, password, code === null ? undefined : code.trim());
      setPassword('');
      setCode(null);
      onEntered(session);
    } catch (error) {
      const refusal = toFault(error);
      if (refusal.code === 'one_time_code_required') setCode('');
      else if (refusal.code === 'second_factor_required') onSetup();
      else {
        if (code !== null) setCode('');
        setFault(error);
      }
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
        {code !== null && <CodeInput value={code} onChange={setCode} />}
        <Button type="submit" loading={busy} fullWidth>
          Log in
        </Button>
      </Stack>
    </form>
  );
}
