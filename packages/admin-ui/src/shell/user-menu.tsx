import { Button, Menu } from '@mantine/core';
import { logOut } from '../api/client.ts';
import { Icon } from '../icons/icon.tsx';
import { hashOf } from '../routing/location.ts';
import { leave } from '../session/leave.ts';
import { useSession } from '../session/session-gate.tsx';
import { setExactTimes, useExactTimes } from '../values/preferences.ts';
import css from './shell.module.css';

const ROLES = { read_only: 'Read only', operator: 'Operator', administrator: 'Administrator' } as const;
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function UserMenu() {
  const { user, site } = useSession();
  const account = site.login.account ? hashOf({ page: 'account' }) : site.login.account_url;
  const exact = useExactTimes();
  return (
    <Menu position="bottom-end" width={260} withinPortal>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          c="var(--mantine-color-text)"
          px="xs"
          fw={500}
          maw={180}
          classNames={{ section: css['userIcon'] ?? '', label: css['userName'] ?? '' }}
          leftSection={<Icon name="user" />}
        >
          {user.username}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {site.login.site === 'portal' ? 'T' : `${ROLES[user.role]} · t`}imes in {zone}
        </Menu.Label>
        <Menu.Item leftSection={<Icon name="clock" size={16} />} onClick={() => setExactTimes(!exact)}>
          {exact ? 'Show relative times' : 'Show exact times'}
        </Menu.Item>
        {account !== null && (
          <Menu.Item leftSection={<Icon name="key" size={16} />} component="a" href={account}>
            Your account
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Item leftSection={<Icon name="leave" size={16} />} onClick={() => void leave(logOut)}>
          Log out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
