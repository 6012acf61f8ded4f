import { Button, Text, Title } from '@mantine/core';
import { useEffect } from 'react';
import { FactorSetup } from '../account/factor-setup.tsx';
import { logOut } from '../api/client.ts';
import { leave } from './leave.ts';
import css from './session.module.css';

/** The first login of staff: nothing else is open until one-time codes are set up. */
export function SetupPage({ onDone }: { readonly onDone: () => void }) {
  useEffect(() => {
    document.title = 'Set up one-time codes · Admin';
  }, []);
  return (
    <main className={css['page']}>
      <div className={css['card']}>
        <Title order={1}>Set up one-time codes</Title>
        <Text size="sm" mt="sm" mb="lg">
          Staff accounts need a second factor: an authenticator app on your phone or computer shows a code for each login.
        </Text>
        <FactorSetup onDone={onDone} />
        <Button variant="subtle" mt="md" onClick={() => void leave(logOut)}>
          Log out
        </Button>
      </div>
    </main>
  );
}
