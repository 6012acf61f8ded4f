import { Button, Group, PasswordInput, Stack, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { changePassword } from '../api/client.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { sayDone } from '../feedback/toast.ts';
import { useSending } from '../forms/use-sending.ts';
import { Card } from '../record/card.tsx';
import { NewPassword } from '../session/new-password.tsx';

export function PasswordCard() {
  const client = useQueryClient();
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState('');
  const { state, fault, onSubmit } = useSending(async () => {
    await changePassword(current, next);
    setCurrent('');
    setNext('');
    sayDone('The password is changed. All other sessions ended.');
    void client.invalidateQueries({ queryKey: ['own-sessions'] });
  });

  return (
    <Card>
      <form onSubmit={onSubmit}>
        <Stack gap="md">
          <Title order={2} size="h4">
            Password
          </Title>
          {fault !== null && <FaultNotice error={fault} />}
          <PasswordInput
            label="Current password"
            name="password"
            autoComplete="current-password"
            required
            withAsterisk={false}
            visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
            value={current}
            onChange={(event) => setCurrent(event.currentTarget.value)}
          />
          <NewPassword value={next} onChange={setNext} />
          <Group justify="flex-end">
            <Button type="submit" loading={state === 'busy'}>
              Change the password
            </Button>
          </Group>
        </Stack>
      </form>
    </Card>
  );
}
