import { Button, type ButtonProps } from '@mantine/core';
import type { ComponentPropsWithRef } from 'react';
import { Icon } from '../icons/icon.tsx';
import { useSession } from '../session/session-gate.tsx';
import css from './shell.module.css';

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
