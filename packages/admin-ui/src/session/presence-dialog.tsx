import { Button, Group, Modal, PasswordInput, Stack, Text } from '@mantine/core';
import { useState, type FormEvent } from 'react';
import { provePresence } from '../api/client.ts';
import { toFault } from '../api/fault.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { CodeInput } from './code-input.tsx';

export function PresenceDialog({ onClose }: { readonly onClose: (isPresent: boolean) => void }) {
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
