import { Menu } from '@mantine/core';
import { logOut } from '../api/client.ts';
import { Icon } from '../icons/icon.tsx';
import { hashOf } from '../routing/location.ts';
import { leave } from '../session/leave.ts';
import { useSession } from '../session/session-gate.tsx';
import { setExactTimes, useExactTimes } from '../values/preferences.ts';
import { UserButton } from './user-button.tsx';

const ROLES = { read_only: 'Read only', operator: 'Operator', administrator: 'Administrator' } as const;
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Opened, because somebody asked for it. */
export function OpenUserMenu() {
  const { user, site } = useSession();
  const account = site.login.account ? hashOf({ page: 'account' }) : site.login.account_url;
  const exact = useExactTimes();
  return (
    <Menu position="bottom-end" width={260} withinPortal defaultOpened>
      <Menu.Target>
        <UserButton />
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
