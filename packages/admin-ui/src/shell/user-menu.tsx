import { Button, type ButtonProps } from '@mantine/core';
import { Suspense, useState, type ComponentPropsWithRef } from 'react';
import { Icon } from '../icons/icon.tsx';
import { later } from '../later.ts';
import { useSession } from '../session/session-gate.tsx';
import css from './shell.module.css';

const OpenUserMenu = later(async () => (await import('./open-user-menu.tsx')).OpenUserMenu);

/** The menu itself comes when it is first opened. */
export function UserMenu() {
  const [isWanted, setWanted] = useState(false);
  const closed = <UserButton aria-haspopup="menu" onClick={() => setWanted(true)} />;
  return isWanted ? (
    <Suspense fallback={closed}>
      <OpenUserMenu />
    </Suspense>
  ) : (
    closed
  );
}

export function UserButton(props: ButtonProps & ComponentPropsWithRef<'button'>) {
  const { user } = useSession();
  return (
    <Button
      variant="subtle"
      color="gray"
      c="var(--mantine-color-text)"
      px="xs"
      fw={500}
      maw={180}
      classNames={{ section: css['userIcon'] ?? '', label: css['userName'] ?? '' }}
      leftSection={<Icon name="user" />}
      {...props}
    >
      {user.username}
    </Button>
  );
}
