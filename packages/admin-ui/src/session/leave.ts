import { sayFailed } from '../feedback/toast.ts';
import { forgetDrafts } from '../forms/drafts.ts';

/** Ends the session and the page with it: whatever was in memory is gone. */
export async function leave(logOut: () => Promise<void>): Promise<void> {
  try {
    await logOut();
  } catch (error) {
    sayFailed(error);
    return;
  }
  forgetDrafts();
  window.history.replaceState(null, '', window.location.pathname);
  window.location.reload();
}
