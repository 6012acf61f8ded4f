import { sendUpload, UploadFailed } from '../../../kit/src/contrib/uploads/browser.ts';
import { requestHeaders } from './client.ts';
import { ApiFault, readFault } from './fault.ts';
import type { AdminFileTarget } from './shapes.ts';

interface Watching {
  readonly onProgress: (sent: number, total: number) => void;
  readonly signal: AbortSignal;
}

const SCAN_LOOK_MS = 1000;
const SCAN_LOOKS_MAX = 120;

/** Sends a file to a controller of the application, waits for its scanner where it has one, and returns the id of the upload. */
export async function sendFile({ endpoint }: AdminFileTarget, file: File, watching: Watching): Promise<string> {
  try {
    const { id, state } = await sendUpload(file, { endpoint, headers: requestHeaders(), ...watching });
    await scanned(`${endpoint}/${id}`, state, watching.signal);
    return id;
  } catch (error) {
    if (!(error instanceof UploadFailed)) throw error;
    throw new ApiFault({ status: error.status, code: error.code ?? 'upload_failed', detail: error.message });
  }
}

async function scanned(url: string, state: string, signal: AbortSignal): Promise<void> {
  let current = { state, reason: null as string | null };
  for (let looks = 0; current.state === 'quarantined' && looks < SCAN_LOOKS_MAX; looks += 1) {
    await new Promise((resolve) => setTimeout(resolve, SCAN_LOOK_MS));
    const response = await fetch(url, { signal, headers: requestHeaders() });
    if (!response.ok) throw await readFault(response);
    current = (await response.json()) as typeof current;
  }
  if (current.state === 'complete') return;
  const detail = current.state === 'quarantined' ? 'The file is still being scanned. Try again later.' : current.reason;
  throw new ApiFault({ status: 422, code: 'upload_rejected', detail: detail ?? 'The file was rejected.' });
}
