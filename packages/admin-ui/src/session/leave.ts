import { sayFailed } from '../feedback/toast.ts';
import { forgetDrafts } from '../forms/drafts.ts';

/** Ends the session, or what it is for, and the page with it: whatever was in memory is gone. */
export async function leave(end: () => Promise<void>): Promise<void> {
  try {
    await end();
  } catch (error) {
    sayFailed(error);
    return;
  }
  forgetDrafts();
  window.history.replaceState(null, '', window.location.pathname);
  window.location.reload();
}
