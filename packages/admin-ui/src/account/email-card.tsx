import { Button, Group, Stack, Text, TextInput, Title } from '@mantine/core';
import { useState } from 'react';
import { askForEmail } from '../api/client.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { useSending } from '../forms/use-sending.ts';
import { Card } from '../record/card.tsx';

/** The address changes when the link in the mail is used. */
export function EmailCard() {
  const [email, setEmail] = useState('');
  const { state, fault, onSubmit } = useSending(async () => {
    await askForEmail(email);
    setEmail('');
  });

  return (
    <Card>
      <form onSubmit={onSubmit}>
        <Stack gap="md">
          <Title order={2} size="h4">
            E-mail address
          </Title>
          <Text size="sm">Links to set a new password are sent to it.</Text>
          {fault !== null && <FaultNotice error={fault} />}
          {state === 'done' && <Notice tone="info">A link is on its way to the new address. The address changes when it is used.</Notice>}
          <TextInput
            label="New e-mail address"
            type="email"
            name="email"
            autoComplete="email"
            required
            withAsterisk={false}
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          <Group justify="flex-end">
            <Button type="submit" loading={state === 'busy'}>
              Send the link
            </Button>
          </Group>
        </Stack>
      </form>
    </Card>
  );
}
