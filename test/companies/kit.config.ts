import { appDatabase, createApp } from 'kit';
import { organizationProduct } from './organizations.ts';

// For `kit mcp` over stdio, which sends no mail.
export default createApp(organizationProduct(appDatabase(), process.env['PUBLIC_URL'] ?? 'http://127.0.0.1:3000', () => undefined));
