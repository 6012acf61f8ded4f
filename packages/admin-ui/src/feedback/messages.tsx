import type { Notifications as KitNotifications } from '@mantine/notifications';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { onSaid, saidCount } from './toast.ts';

/** Where messages appear, from the first one on. Below dialogs (200): a message never covers what is being asked. */
export function Messages() {
  const said = useSyncExternalStore(onSaid, saidCount);
  const [Notifications, setNotifications] = useState<typeof KitNotifications | null>(null);
  useEffect(() => {
    if (said === 0 || Notifications !== null) return;
    void Promise.allSettled([import('./late-messages.ts'), import('../late-styles.ts')]).then(([found]) =>
      // A server that is away sends no code: the bar says so, and the next message tries again.
      found.status === 'fulfilled' ? setNotifications(() => found.value.Notifications) : undefined,
    );
  }, [said, Notifications]);
  return Notifications === null ? null : <Notifications position="bottom-right" limit={1} zIndex={150} />;
}
