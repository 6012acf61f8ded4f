import { notifications } from '@mantine/notifications';
import { explain, toFault } from '../api/fault.ts';
import { withLocalTimes } from '../values/format.ts';

export function sayDone(message: string): void {
  notifications.show({ message: withLocalTimes(message), color: 'accent', withBorder: true, autoClose: 6000 });
}

/** Errors stay until they are read. */
export function sayFailed(error: unknown): void {
  const fault = toFault(error);
  // The login form is on its way; a second message would only hide it.
  if (fault.status === 401) return;
  notifications.show({ title: 'That did not work', message: explain(fault), color: 'danger', withBorder: true, autoClose: false });
}
