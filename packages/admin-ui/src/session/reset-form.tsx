import { Button, Group, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { askForReset } from '../api/client.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { useSending } from '../forms/use-sending.ts';

/** Says the same for every name: who has an account here is nobody's business. */
export function ResetForm({ onDone }: { readonly onDone: () => void }) {
  const [login, setLogin] = useState('');
  const { state, fault, onSubmit } = useSending(() => askForReset(login));

  if (state === 'done')
    return (
      <Stack gap="md">
        <Notice tone="info">
          If this account exists and has a password and an e-mail address, a link is on its way. It works for an hour.
        </Notice>
        <Button onClick={onDone}>Back to the login</Button>
      </Stack>
    );
  return (
    <form onSubmit={onSubmit}>
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
          value={login}
          onChange={(event) => setLogin(event.currentTarget.value)}
        />
        <Group justify="space-between">
          <Button variant="default" onClick={onDone}>
            Cancel
          </Button>
          <Button type="submit" loading={state === 'busy'}>
            Send the link
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
