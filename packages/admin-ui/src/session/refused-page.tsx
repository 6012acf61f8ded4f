import { Button, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { logOut } from '../api/client.ts';
import type { AdminSession } from '../api/shapes.ts';
import { LoginEntry } from './login-entry.tsx';
import { leave } from './leave.ts';
import css from './session.module.css';
import { useTabTitle } from './tab-title.ts';

/** Logged in, but not as staff: say so, and offer the ways out. */
export function RefusedPage({ onEntered, onSetup }: { readonly onEntered: (session: AdminSession) => void; readonly onSetup: () => void }) {
  const [other, setOther] = useState(false);
  useTabTitle('Staff only');
  return (
    <main className={css['page']}>
      <div className={css['card']}>
        <Title order={1}>Staff only</Title>
        <Text size="sm" mt="sm" mb="lg">
          Your account is not a staff account, so this site is closed to it. Ask an operator for the staff flag, or log in with another
          account.
        </Text>
        {other ? (
          <LoginEntry onEntered={onEntered} onSetup={onSetup} />
        ) : (
          <Stack gap="sm">
            <Button onClick={() => setOther(true)}>Log in with another account</Button>
            <Button variant="default" onClick={() => void leave(logOut)}>
              Log out
            </Button>
          </Stack>
        )}
      </div>
    </main>
  );
}
