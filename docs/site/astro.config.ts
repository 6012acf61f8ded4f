import starlight from '@astrojs/starlight';
import { defineConfig, passthroughImageService } from 'astro/config';
import { sidebar } from './pages.ts';

export default defineConfig({
  publicDir: './.public',
  image: { service: passthroughImageService() },
  integrations: [
    starlight({
      title: 'kit',
      description: 'A configuration server and a web-API toolkit with scoped API keys and transactional webhooks.',
      favicon: '/favicon.svg',
      logo: { src: './public/favicon.svg', alt: '' },
      customCss: ['./src/site.css'],
      head: [{ tag: 'script', attrs: { src: '/accessible.js', defer: true } }],
      sidebar: sidebar(),
      pagination: true,
      lastUpdated: false,
      credits: false,
      tableOfContents: { minHeadingLevel: 2, maxHeadingLevel: 3 },
      expressiveCode: {
        themes: ['github-dark', 'github-light'],
        // Long lines break: what is cut off at the edge is not read.
        defaultProps: { frame: 'none', wrap: true, preserveIndent: true },
        styleOverrides: { borderRadius: '0.375rem', codeFontSize: '0.84rem', frames: { shadowColor: 'transparent' } },
      },
    }),
  ],
});
