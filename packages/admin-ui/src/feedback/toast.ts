import { notifications } from '@mantine/notifications';
import { explain, titleOf, toFault } from '../api/fault.ts';
import { withLocalTimes } from '../values/format.ts';

/** One message at a time: the newest replaces the one before. */
const ID = 'message';

export function sayDone(message: string): void {
  show({ title: null, message: withLocalTimes(message), color: 'accent', autoClose: 6000 });
}

/** Errors stay until they are read. */
export function sayFailed(error: unknown): void {
  const fault = toFault(error);
  // The login form is on its way; a second message would only hide it.
  if (fault.status === 401) return;
  show({ title: titleOf(fault), message: explain(fault), color: 'danger', autoClose: false });
}

function show(message: {
  readonly title: string | null;
  readonly message: string;
  readonly color: string;
  readonly autoClose: number | false;
}): void {
  notifications.hide(ID);
  notifications.show({ id: ID, withBorder: true, ...message });
}
