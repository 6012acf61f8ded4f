import { createRequire } from 'node:module';
import type * as Client from '@aws-sdk/client-s3';
import type * as PresignedPost from '@aws-sdk/s3-presigned-post';
import type * as Presigner from '@aws-sdk/s3-request-presigner';

// The SDK's ES modules are for bundlers: their imports lack extensions, and Vite would choose them.
const load = createRequire(import.meta.url);

const client = load('@aws-sdk/client-s3') as typeof Client;
const post = load('@aws-sdk/s3-presigned-post') as typeof PresignedPost;
const presigner = load('@aws-sdk/s3-request-presigner') as typeof Presigner;

export const sdk = { ...client, ...post, ...presigner };
