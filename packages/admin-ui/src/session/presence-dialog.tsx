import { Button, Group, Modal, PasswordInput, Stack, Text } from '@mantine/core';
import { useState, type FormEvent } from 'react';
import { provePresence, readSession } from '../api/client.ts';
import { toFault } from '../api/fault.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { CodeInput } from './code-input.tsx';
import { loginAddress } from './login-address.ts';

interface PresenceProps {
  /** The application's login page; null: the site asks for the password itself. */
  readonly url: string | null;
  readonly onClose: (isPresent: boolean) => void;
}

export function PresenceDialog({ url, onClose }: PresenceProps) {
  return url === null ? <PasswordDialog onClose={onClose} /> : <LoginAgainDialog url={url} onClose={onClose} />;
}

/** The login is elsewhere: it opens in another tab, and the request goes out again afterwards. */
function LoginAgainDialog({ url, onClose }: { readonly url: string; readonly onClose: (isPresent: boolean) => void }) {
  const [fault, setFault] = useState<unknown>(null);
  const goOn = async (): Promise<void> => {
    try {
      // The new session has a new CSRF token.
      await readSession();
      onClose(true);
    } catch (error) {
      setFault(error);
    }
  };
  return (
    <Modal opened onClose={() => onClose(false)} title="Confirm that it is you" centered zIndex={450}>
      <Stack gap="md">
        {fault !== null && <FaultNotice error={fault} />}
        <Text size="sm">Your last login was too long ago for this change. Log in again, then continue here.</Text>
        <Group justify="flex-end" gap="sm">
          <Button component="a" href={loginAddress(url)} target="_blank" rel="noopener" variant="default">
            Log in
          </Button>
          <Button onClick={() => void goOn()}>Continue</Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function PasswordDialog({ onClose }: { readonly onClose: (isPresent: boolean) => void }) {
  const [password, setPassword] = useState('');
  const [code, setCode] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    event.stopPropagation();
    setBusy(true);
    setFault(null);
    try {
      await provePresence(password, code === null ? undefined : code.trim());
      onClose(true);
    } catch (error) {
      if (toFault(error).code === 'one_time_code_required') setCode('');
      else setFault(error);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Modal opened onClose={() => onClose(false)} title="Confirm that it is you" centered zIndex={450}>
      <form onSubmit={(event) => void submit(event)}>
        <Stack gap="md">
          <Text size="sm">Your last login was more than 10 minutes ago. This change needs your password again.</Text>
          {fault !== null && <FaultNotice error={fault} />}
          <PasswordInput
            label="Password"
            name="password"
            autoComplete="current-password"
            required
            withAsterisk={false}
            data-autofocus
            visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          {code !== null && <CodeInput value={code} onChange={setCode} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={() => onClose(false)}>
              Cancel
            </Button>
            <Button type="submit" loading={busy}>
              Confirm
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
