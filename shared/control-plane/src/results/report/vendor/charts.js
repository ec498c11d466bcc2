// What the report uses of Apache ECharts; build.sh makes echarts.min.js of it.
export { init } from "echarts/core";
import { use } from "echarts/core";
import { BarChart, CustomChart, ParallelChart } from "echarts/charts";
import { DataZoomSliderComponent, GridComponent, ParallelComponent, TooltipComponent } from "echarts/components";
import { SVGRenderer } from "echarts/renderers";

use([BarChart, CustomChart, ParallelChart, DataZoomSliderComponent, GridComponent, ParallelComponent, TooltipComponent, SVGRenderer]);
